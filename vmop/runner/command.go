package runner

import (
	"context"

	"github.com/vmop/sdk/vmop/qmp"
)

func do[R any](ctx context.Context, c *qmp.Client, cmd qmp.Command[R]) error {
	_, err := answer(ctx, c, cmd)
	return err
}

func answer[R any](ctx context.Context, c *qmp.Client, cmd qmp.Command[R], opts ...qmp.CallOption) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	return qmp.Do(ctx, c, cmd, opts...)
}
