package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	criruntime "k8s.io/cri-client/pkg/fake"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
)

const kubeletName = "kubelet"

// hidden are folders of the machine in which a kubelet writes, whatever its configuration says. The one that is measured
// has empty ones.
var hidden = []string{"/var/lib", "/var/log"}

// kubeletConfiguration is of a kubelet that writes in one folder only, makes no cgroups, and waits for no rate limit of its own.
const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%[1]s/runtime.sock
podLogsDir: %[1]s/logs
volumePluginDir: %[1]s/plugins
kubeAPIQPS: 1000000
kubeAPIBurst: 1000000
eventRecordQPS: 0
registerNode: false
enableServer: false
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
evictionHard: {}
resolvConf: ""
`

// stockKubelet is the kubelet of bin/k8s as a contender, once it showed that it can mount on this machine. Stop ends what it
// needs.
func (b *testbed) stockKubelet() (c contender, stop func(), err error) {
	if b.options.quick {
		return c, nil, errors.New("a round takes half a minute")
	}
	c, stop, err = b.prepareKubelet()
	if err != nil {
		return c, nil, err
	}
	running, err := b.startMounter(c)
	running.stop()
	if err != nil {
		stop()
		return c, nil, errors.Join(err, b.remove(first.pod(0)))
	}
	return c, stop, nil
}

// prepareKubelet writes what a kubelet reads, and starts its container runtime, which runs nothing: that of kubemark,
// Kubernetes' own benchmark.
func (b *testbed) prepareKubelet() (c contender, stop func(), err error) {
	program, err := apiserver.Binary(kubeletName)
	if err != nil {
		return c, nil, err
	}
	for _, folder := range hidden {
		if strings.HasPrefix(program, folder+"/") || strings.HasPrefix(b.dir, folder+"/") {
			return c, nil, fmt.Errorf("%s or %s lies in %s, of which the kubelet has one of its own", program, b.dir, folder)
		}
	}
	root := b.podsFolder(kubeletName)
	if err := os.MkdirAll(root, 0o750); err != nil {
		return c, nil, err
	}
	if err := os.WriteFile(filepath.Join(root, "kubelet.yaml"), fmt.Appendf(nil, kubeletConfiguration, root), 0o600); err != nil {
		return c, nil, err
	}
	containers := criruntime.NewFakeRemoteRuntime()
	containers.ImageService.SetFakeImageSize(1) // a kubelet refuses images of no size
	containers.ImageService.SetFakeImages([]string{fixture.Pod("", "").Spec.Containers[0].Image + ":latest"})
	if err := containers.Start("unix://" + filepath.Join(root, "runtime.sock")); err != nil {
		return c, nil, err
	}
	return b.part(kubeletName, kubeletName, program, root), containers.Stop, nil
}

// becomeKubelet is a kubelet that has a mount namespace of its own, in which what it writes to outside of its folder is
// covered. All that it mounts goes with it.
func becomeKubelet(_ context.Context, kubeconfig string, arguments []string) error {
	program, root := arguments[0], arguments[1]
	// The thread that executes the kubelet is the one in the namespace.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts in the namespace: %w", err)
	}
	for _, folder := range hidden {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("covering %s: %w", folder, err)
		}
	}
	if err := kubenode.CoverKernel(root); err != nil {
		return err
	}
	// A thread doesn't inherit that it ends with the benchmark.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("tying the kubelet to the benchmark: %w", err)
	}
	return unix.Exec(program, []string{
		kubeletName, "--config=" + filepath.Join(root, "kubelet.yaml"), "--kubeconfig=" + kubeconfig, "--root-dir=" + root,
		"--cert-dir=" + filepath.Join(root, "certificates"), "--hostname-override=" + mounterNode,
	}, os.Environ())
}
