// Package output defines the types that vmop-cli prints with -o json and -o yaml. A
// program in Go reads all of it with one of them:
//
//	var out output.Output
//	err := json.Unmarshal(printed, &out)
//	for _, m := range out.Items {
//		if m, is := m.(*output.Machine); is {
//			fmt.Println(m.Name, m.Status.Phase)
//		}
//	}
//
// These rules hold for all commands, for machines of one host and of a cluster:
//
//   - The output is an object with apiVersion and kind. Commands about any number of objects print
//     a List of apiVersion v1 with items, as kubectl does, also for one or none.
//   - Where Kubernetes or this project's API has a kind, it is used: machines are VirtualMachines,
//     with the metadata, spec and status of the API, operations VirtualMachineOperations, and
//     events Events. Additional fields are below observed, which the API does not have. Other kinds
//     are of [APIVersion].
//   - The same fact has the same name everywhere. Objects have their name in metadata.name and
//     metadata.namespace, their creation time in metadata.creationTimestamp, and their machine in
//     virtualMachineName. Files are path, the size of a disk that a guest sees is size, and the
//     space it takes on the storage allocated.
//   - Sizes are Kubernetes quantities of bytes (64Mi, 1073741823), and so are rates, of bytes per
//     second. Times are those of RFC 3339; durations are numbers of seconds, whose names end with
//     Seconds. Unknown values are missing.
//
// Fields may be added; the changelog mentions removed fields and changed meanings.
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package output
