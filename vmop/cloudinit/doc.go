// Package cloudinit makes the NoCloud seed that hands a machine's cloud-init
// settings to its guest: up to three YAML documents on a small FAT volume
// labelled CIDATA.
//
// [Render] renders the settings of a manifest as documents, [Image] puts the documents on a volume.
// Both are functions of their arguments: the same input gives the same bytes, so that a seed can be
// compared, cached and re-created at any time without the guest seeing a different device.
//
// The names of the files, the label and the meaning of the documents are those of cloud-init's
// NoCloud data source.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package cloudinit
