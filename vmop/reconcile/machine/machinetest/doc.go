// Package machinetest has the worlds in which decisions about machines are tested.
package machinetest
