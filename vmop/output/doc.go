// Package output has the types of what vmop-cli prints with -o json and -o yaml. A
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
// One rule holds for all commands, of machines of one host and of a cluster:
//
//   - What is printed is an object with apiVersion and kind. Commands that are about any
//     number of things print a List of apiVersion v1 with items, as kubectl does, also if
//     there is one or none.
//   - What Kubernetes or this project's API has a kind for is of that kind: machines are
//     VirtualMachines, with the metadata, spec and status that the API has, operations
//     VirtualMachineOperations, and events Events. What the API has no field for is below
//     observed, which it has not. Other kinds are of [APIVersion].
//   - The same fact has the same name everywhere. Objects say what they are called in
//     metadata.name and metadata.namespace, and since when they are there in
//     metadata.creationTimestamp; whose they are in virtualMachineName. Files are path,
//     what a guest has of a disk is size, and what that takes of the storage allocated.
//   - Sizes are Kubernetes quantities of bytes (64Mi, 1073741823), and so are rates, of
//     bytes in a second. Times are those of RFC 3339; spans are numbers of seconds, whose
//     names end with Seconds. What is not known is missing.
//
// Fields are added; that one goes, or changes its meaning, is said in the changelog.
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package output
