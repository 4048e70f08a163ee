package imagebuild_test

import (
	"context"
	"fmt"
	"time"

	"github.com/vmop/sdk/internal/imagebuild"
)

func ExampleNew() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	b, err := imagebuild.New(ctx, imagebuild.Options{Context: "../.."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	const image = "example.org/vmop/operator:1"
	if err := b.Build(ctx, "deploy/images/operator.debian.Dockerfile", imagebuild.Release, image); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Export(ctx, image, "operator.tar"))
}
