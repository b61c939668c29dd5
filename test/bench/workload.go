package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/fixture"
)

// order is what is there first.
type order string

const (
	// standing: volumes, Available, and claims are there before the program
	// starts. The clock starts with the first write that binds.
	standing order = "standing start"
	// volumesFirst: the program runs and the volumes are Available; then the
	// claims are created, 32 at a time.
	volumesFirst order = "volumes first"
	// claimsFirst: the program runs and the claims wait; then the volumes are
	// created, 32 at a time.
	claimsFirst order = "claims first"
)

// class of all volumes and claims that are measured.
const class = "bench"

// workload is n volumes and n claims, and in which order they come.
type workload struct {
	name  string
	order order
	// different: each volume has a size of its own, and each claim asks for
	// exactly one of them; what is created last comes in random order. Every
	// claim must end up with its volume. Otherwise all are of one size.
	different bool
	// huge: what is asked for, no volume has.
	huge bool
}

var workloads = []workload{
	{name: "identical", order: standing},
	{name: "different", order: standing, different: true},
	{name: "volumes-first", order: volumesFirst, different: true},
	{name: "claims-first", order: claimsFirst, different: true},
}

func workloadNames() []string {
	names := make([]string, 0, len(workloads))
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

func workloadNamed(name string) (workload, error) {
	for _, w := range workloads {
		if w.name == name {
			return w, nil
		}
	}
	return workload{}, fmt.Errorf("there is no workload %q, only %s", name, strings.Join(workloadNames(), ", "))
}

func (w workload) volume(i int) *corev1.PersistentVolume {
	return fixture.Volume(volumeName(i), fixture.OfClass(class), fixture.Holding(w.size(i)))
}

func (w workload) claim(i int) *corev1.PersistentVolumeClaim {
	return fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(class), fixture.Asking(w.size(i)))
}

func (w workload) size(i int) string {
	switch {
	case w.huge:
		return "1Pi"
	case w.different:
		return fmt.Sprintf("%dMi", i+1)
	default:
		return "1Gi"
	}
}

const (
	volumePrefix = "volume-"
	claimPrefix  = "claim-"
)

func volumeName(i int) string { return fmt.Sprintf("%s%05d", volumePrefix, i) }

func claimName(i int) string { return fmt.Sprintf("%s%05d", claimPrefix, i) }

// volumeOf is the volume with the claim's number.
func volumeOf(claim string) string { return volumePrefix + strings.TrimPrefix(claim, claimPrefix) }
