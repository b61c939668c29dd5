package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
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

func workloadNames() (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

func workloadNamed(name string) (workload, error) {
	i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}, fmt.Errorf("there is no workload %q, only %s", name, strings.Join(workloadNames(), ", "))
	}
	return workloads[i], nil
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

// createVolumes returns for each claim when its volume's creation was answered.
func (b *testbed) createVolumes(w workload, s span) (map[string]time.Time, error) {
	return b.create(s, func(i int) client.Object { return w.volume(i) })
}

func (b *testbed) createClaims(w workload, s span) (map[string]time.Time, error) {
	return b.create(s, func(i int) client.Object { return w.claim(i) })
}

// creation is the request of what a workload has last.
func (w workload) creation() string {
	if w.order == claimsFirst {
		return "POST persistentvolumes"
	}
	return "POST persistentvolumeclaims"
}

// createFirst creates what a workload has first, and createLast what it has then.
func (b *testbed) createFirst(w workload, s span) (map[string]time.Time, error) {
	if w.order == claimsFirst {
		return b.createClaims(w, s)
	}
	return b.createVolumes(w, s)
}

func (b *testbed) createLast(w workload, s span) (map[string]time.Time, error) {
	if w.order == claimsFirst {
		return b.createVolumes(w, s)
	}
	return b.createClaims(w, s)
}
