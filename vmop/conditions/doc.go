// Package conditions defines the types and reasons of a machine's conditions, which users and their
// tools match on. This is their only definition: the API's types, the operator and the runner,
// which does not import Kubernetes types, take them from here.
//
// A condition itself is a type in three places: spec.Condition has Kubernetes' types of times and
// statuses, with which the runner is not built because its memory is counted; live.StatusCondition
// is the same in JSON without them; and live.Condition, which the state of a runner keeps, is what
// a decision without a clock finds, and so has neither a time nor a generation.
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package conditions
