package operatorconfig_test

import (
	"fmt"
	"log"

	"github.com/vmop/sdk/vmop/operatorconfig"
)

func ExampleParse() {
	c, remarks, err := operatorconfig.Parse("config.yaml", []byte(`
"/Manager/Controller/Reconciler":
  runnerDataPvc: {storageClassName: fast}
  loadBalancerServices: true
`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Settings.RunnerDataStorageClass)
	for _, w := range remarks.Warnings {
		fmt.Println(w)
	}
	// Output:
	// fast
	// config.yaml:4: /Manager/Controller/Reconciler: loadBalancerServices: unknown option, ignored; /Manager/Controller/Reconciler has cpuOvercommit, loadBalancerService, loggingProperties, ramOvercommit, runnerDataPvc
}
