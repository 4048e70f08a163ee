// Package operatorconfig reads the operator's configuration file. The file is
// VM-Operator's, so that a cluster that is taken over keeps the one it has:
//
//	"/Manager":
//	  "/Controller":
//	    "/Reconciler":
//	      runnerDataPvc:
//	        storageClassName: fast
//	      cpuOvercommit: 2
//	      ramOvercommit: 1.25
//	      loadBalancerService: false
//	      loggingProperties: |
//	        .level=INFO
//	      "/DisplaySecretReconciler":
//	        passwordValidity: 10
//	"/Operator":
//	  runnerImage: registry.example.org/vmop-runner:1.0
//	  kvmResource: devices.kubevirt.io/kvm
//	  privileged: false
//	  namespaces: [lab, prod] # or excludeNamespaces
//	  concurrency: 4
//	  operationsKept: 10
//	  operationsKeptFor: 24h
//
// A key that begins with a slash, or with an underscore, as VM-Operator accepts too, names a
// component below the one around it. It may have several parts, as in "/Manager/Controller", and a
// component may be named more than once. All other keys are options of the component. Below
// "/Operator" are the options that VM-Operator does not have.
//
// [Parse] is a function of the file's bytes. Each problem has a line, and describes what would be
// right.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package operatorconfig
