// Command controlplane is a Kubernetes control plane for the tests: one binary whose
// subcommands are the upstream programs themselves, and one that makes their certificates.
//
//	controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]
//	controlplane pki DIR NAME=COMMON_NAME[/ORGANIZATION]...
//
// Only the chosen command is constructed: all in one command tree would clash
// in the global flag, feature-gate and metrics registries.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const (
	usage = `usage: controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]
       controlplane pki DIR NAME=COMMON_NAME[/ORGANIZATION]...`
	parentVariable = "CONTROLPLANE_PARENT"
)

// init ties this process to the one that started it. It runs on the main thread, which lives as
// long as the process: the kernel keeps the parent-death signal per thread.
func init() {
	parent, err := strconv.Atoi(os.Getenv(parentVariable))
	if err != nil {
		return // started by hand: stopped by hand
	}
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	if os.Getppid() != parent { // it died before the signal was asked for
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 2 {
		fail(usage)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "pki":
		if err := writePKI(os.Args[1:]); err != nil {
			fail(err.Error())
		}
		return
	}
	build, ok := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": manager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}[name]
	if !ok {
		fail(usage)
	}
	os.Exit(cli.Run(build()))
}

func fail(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(2)
}
