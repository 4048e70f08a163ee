package qmp

import (
	"context"
	"fmt"
)

// QueryQMPSchema queries the schema in raw form. Client.Schema is more convenient.
type QueryQMPSchema struct{}

// QMP implements Command.
func (QueryQMPSchema) QMP() (string, []SchemaEntity) { return "query-qmp-schema", nil }

// Schema returns QEMU's schema, which is queried at the first call only. That takes QEMU some 40
// ms, during which it executes nothing else. The result must not be modified.
func (c *Client) Schema(ctx context.Context) (*Schema, error) {
	if s := c.schema.Load(); s != nil {
		return s, nil
	}
	if err := c.acquire(ctx, c.schemaTurn); err != nil {
		return nil, fmt.Errorf("qmp: query-qmp-schema: %w", err)
	}
	defer func() { <-c.schemaTurn }()
	if s := c.schema.Load(); s != nil {
		return s, nil
	}
	entities, err := Do(ctx, c, QueryQMPSchema{})
	if err != nil {
		return nil, err
	}
	s := newSchema(entities)
	c.schema.Store(s)
	return s, nil
}
