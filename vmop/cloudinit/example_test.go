package cloudinit_test

import (
	"encoding/json"
	"fmt"

	"github.com/vmop/sdk/vmop/cloudinit"
)

func Example() {
	docs, err := cloudinit.Render(cloudinit.Input{
		MetaData: map[string]string{"instance-id": "v1", "local-hostname": "web"},
		UserData: json.RawMessage(`{"users": [{"name": "alice", "lock_passwd": true}], "timezone": "UTC"}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n%s\n", docs.MetaData, docs.UserData)

	image, err := cloudinit.Image(docs)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(image), "bytes")

	// Output:
	// instance-id: v1
	// local-hostname: web
	//
	// #cloud-config
	// users:
	//   - name: alice
	//     lock_passwd: true
	// timezone: UTC
	//
	// 135168 bytes
}
