package main

import (
	"fmt"
	"os"
	"os/user"
	"time"

	buildversion "github.com/vmop/sdk/internal/version"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func readConfig(path string) (data []byte, c runnerconfig.Config, warnings []string, err error) {
	if data, err = os.ReadFile(path); err != nil {
		return nil, c, nil, fmt.Errorf("read the configuration: %w", err)
	}
	if c, warnings, err = runner.ReadConfig(data); err != nil {
		return nil, c, nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, c, warnings, nil
}

func directories(c *runnerconfig.Config) (runner.Directories, error) {
	s := runner.Surroundings{Getenv: os.Getenv, Creatable: runner.Creatable}
	u, err := user.Current()
	if err != nil {
		// A pod's user often has no name.
		s.UserName, s.Home = fmt.Sprint(os.Geteuid()), os.Getenv("HOME")
	} else {
		s.UserName, s.Home = u.Username, u.HomeDir
	}
	return runner.DefaultDirectories(c, s), nil
}

// podVolumes are where the operator has a machine's volumes mounted (machineconfig.DataDir and
// DiskMountDir).
var podVolumes = []string{"/var/local/vm-data", "/var/local/vmop-disks"}

// podImages is where the image repository is mounted (machineconfig.ImageRepositoryDir).
const podImages = "/var/local/vmop-image-repository"

func warn(r runner.Reporter, text string) {
	r.Message(runner.Message{Time: time.Now(), Level: runner.LevelWarning, Source: "runner", Text: text})
}

func version() string { return buildversion.String() }
