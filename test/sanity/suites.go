package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/cluster"
)

// tellSuites runs all suites, and tells how each ended. One that fails doesn't keep the
// next from running.
func (s *tale) tellSuites() {
	fmt.Println("\ncsi-sanity")
	ended := make(chan run)
	total := 0
	for _, one := range lanes {
		total += len(one.subjects)
		go func() {
			for _, about := range one.subjects {
				ended <- s.runOne(about, one.inGuest)
			}
		}()
	}
	for range total {
		ran := <-ended
		s.runs = append(s.runs, ran)
		fmt.Println(ran.outcome.tell(ran.subject.Name))
	}
}

func (s *tale) runOne(about Subject, inGuest bool) run {
	ran := run{subject: about}
	if err := s.runOn(about, inGuest, &ran.outcome); err != nil {
		ran.outcome.Trouble = err.Error()
	}
	return ran
}

// runOn runs a suite where its volumes are.
func (s *tale) runOn(about Subject, inGuest bool, got *Outcome) error {
	plan := Plan{Subject: about, Kubeconfig: s.stowage.Folder.Kubeconfig(cluster.AdminUser), Base: s.stowage.Folder.Disks()}
	if !inGuest {
		plan.KubeletDir, plan.Folder = kubeletDir(s.machineDir()), filepath.Join(s.machineDir(), "suites")
		plan.Log = s.folder.Log("suite-" + about.Name)
		return s.machine.Run(plan, got)
	}
	plan.Kubeconfig = uml.MachineDir + plan.Kubeconfig
	plan.KubeletDir, plan.Folder, plan.Log = kubeletDir(guestRoot), filepath.Join(guestRoot, "suites"), "/run/logs/suite-"+about.Name+".log"
	return s.guest.Ask("Host.Run", plan, got)
}

// nothingMounted: neither host has anything mounted in the kubelet's folder, and none of
// the machine's loop devices shows a volume.
func (s *tale) nothingMounted() error {
	var here, there []string
	err := errors.Join(s.machine.Mounts(s.machineDir(), &here), s.guest.Ask("Host.Mounts", guestRoot, &there))
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

// verdict is the summary, on one line, and the error that there is if all isn't well.
func (s *tale) verdict() error {
	var total Outcome
	var failed []string
	for _, ran := range s.runs {
		total.Specs = append(total.Specs, ran.outcome.Specs...)
		if ran.outcome.problem() != nil {
			failed = append(failed, ran.subject.Name)
		}
	}
	err := s.End()
	if len(failed) > 0 {
		err = errors.Join(fmt.Errorf("csi-sanity doesn't pass for %s", strings.Join(failed, ", ")), err)
	}
	if err == nil {
		fmt.Printf("csi-sanity passed for %d kinds of volumes: %s.\n", len(s.runs), total)
	}
	return err
}
