package sanity_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// runLanes begins all suites: those of a queue one after the other, queues at the same time.
// The context outlives the call.
func (s *testbed) runQueues(ctx context.Context) {
	for _, one := range queues {
		for _, about := range one.subjects {
			s.outcomes[about.Name] = make(chan Outcome, 1)
		}
		go func() {
			for _, about := range one.subjects {
				var got Outcome
				if err := s.runOn(ctx, about, one.inGuest, &got); err != nil {
					got.Trouble = err.Error()
				}
				s.outcomes[about.Name] <- got
			}
		}()
	}
}

// runOn runs a suite where its volumes are.
func (s *testbed) runOn(ctx context.Context, about Subject, inGuest bool, got *Outcome) error {
	plan := Plan{Subject: about, Kubeconfig: s.stowage.Folder.Kubeconfig(cluster.AdminUser), Base: s.stowage.Folder.Disks()}
	if !inGuest {
		plan.KubeletDir, plan.Folder = kubeletDir(s.machineDir()), filepath.Join(s.machineDir(), "suites")
		plan.Socket = s.socket(about.Backend)
		plan.Log = s.folder.Log("suite-" + about.Name)
		return s.machine.Run(plan, got)
	}
	plan.Kubeconfig = uml.MachineDir + plan.Kubeconfig
	plan.KubeletDir, plan.Folder, plan.Log = kubeletDir(guestRoot), filepath.Join(guestRoot, "suites"), "/run/logs/suite-"+about.Name+".log"
	return s.guest.CallWithin(ctx, sanityTime+callMargin, "Host.Run", plan, got)
}

// nothingMounted: neither host has anything mounted in the kubelet's folder, and none of
// the machine's loop devices shows a volume.
func (s *testbed) nothingMounted(ctx context.Context) error {
	var here, there []string
	err := errors.Join(s.machine.Mounts(s.machineDir(), &here), s.guest.Call(ctx, "Host.Mounts", guestRoot, &there))
	if left := slices.Concat(here, there); err == nil && len(left) > 0 {
		err = fmt.Errorf("still mounted: %s", strings.Join(left, ", "))
	}
	loops, globErr := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, loop := range loops {
		shows, _ := os.ReadFile(loop) // one that is gone shows nothing
		if strings.HasPrefix(string(shows), s.machineDir()+"/") || strings.HasPrefix(string(shows), s.base()+"/") {
			err = errors.Join(err, fmt.Errorf("%s still shows %s", loop, shows))
		}
	}
	return errors.Join(err, globErr)
}
