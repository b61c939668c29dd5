package main

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// round is what came out when one program went through one workload once.
type round struct {
	Program  string
	Workload string
	N        int
	// Bound is how many of the N claims were bound; Wrong how many of those got
	// another volume than theirs.
	Bound, Wrong int
	Seconds      float64
	PerSecond    float64
	Latency      latency
	Writes       writes
	// WritesPerBind counts failed requests too.
	WritesPerBind float64
	// CPUSeconds without what the program needs to start in an empty cluster.
	CPUSeconds float64
	CPUPerBind milliseconds
	// PeakMiB is the most memory that the program had in RAM.
	PeakMiB float64
}

// race is a round while it runs.
type race struct {
	*testbed
	contender contender
	workload  workload
	n         int

	process *process
	// created tells of claims when they, or their volumes, were created; empty
	// where all was there before.
	created map[string]time.Time
	spent   usage
	written writes
}

// round lets a program go through a workload, and removes everything after.
func (b *testbed) round(c contender, w workload, n int) (result round, err error) {
	r := &race{testbed: b, contender: c, workload: w, n: n}
	defer func() {
		if r.process != nil {
			r.process.stop()
		}
		err = errors.Join(err, b.clear())
	}()
	if err := r.prepare(); err != nil {
		return round{}, fmt.Errorf("preparing %s: %w", w.name, err)
	}
	watching, err := b.observe()
	if err != nil {
		return round{}, err
	}
	started := time.Now()
	if err := r.begin(); err != nil {
		return round{}, fmt.Errorf("beginning %s: %w", w.name, err)
	}
	first, bound, err := watching.awaitBound(b.ctx, n, r.process)
	if err != nil {
		return round{}, fmt.Errorf("waiting for %s to bind: %w", c.name, err)
	}
	if w.order == standing {
		started = first
	}
	return r.result(started, bound)
}

// prepare makes what is there before the clock starts.
func (r *race) prepare() (err error) {
	all := span{n: r.n}
	switch r.workload.order {
	case standing:
		r.spent.cpu = r.starting[r.contender.name]
		return r.prepareStanding(all)
	case volumesFirst:
		err = r.prepareRunning(func() error { _, err := r.createVolumes(r.workload, all); return err })
	case claimsFirst:
		err = r.prepareRunning(func() error { _, err := r.createClaims(r.workload, all); return err })
	}
	return err
}

func (r *race) prepareStanding(all span) (err error) {
	if _, err = r.createVolumes(r.workload, all); err != nil {
		return err
	}
	if err := r.makeAvailable(); err != nil {
		return err
	}
	if _, err = r.createClaims(r.workload, all); err != nil {
		return err
	}
	r.written, err = r.awaitQuiet()
	return err
}

// prepareRunning starts the program, creates what comes first, and waits until
// the program has done all that it can do with it.
func (r *race) prepareRunning(create func() error) (err error) {
	if r.process, err = r.startWorking(r.contender); err != nil {
		return err
	}
	if err := create(); err != nil {
		return err
	}
	if r.written, err = r.awaitQuiet(); err != nil {
		return err
	}
	r.spent, err = r.process.usage()
	return err
}

// begin does what makes claims be bound.
func (r *race) begin() (err error) {
	switch r.workload.order {
	case standing:
		r.process, err = r.run(r.contender)
	case volumesFirst:
		r.created, err = r.createClaims(r.workload, span{n: r.n})
	case claimsFirst:
		r.created, err = r.createVolumes(r.workload, span{n: r.n})
	}
	return err
}

func (r *race) result(started time.Time, bound map[string]time.Time) (round, error) {
	written, err := r.awaitQuiet()
	if err != nil {
		return round{}, err
	}
	if r.workload.order != standing {
		// Creating the claims, or the volumes, was part of it, but not the program's.
		r.written[creation(r.workload)] += r.n
	}
	used, err := r.process.usage()
	if err != nil {
		return round{}, err
	}
	wrong, err := r.wrong()
	if err != nil {
		return round{}, err
	}
	result := round{
		Program: r.contender.name, Workload: r.workload.name, N: r.n, Bound: len(bound), Wrong: wrong,
		Writes: written.since(r.written), CPUSeconds: (used.cpu - r.spent.cpu).Seconds(), PeakMiB: float64(used.peak) / (1 << 20),
	}
	var times []time.Duration
	for claim, when := range bound {
		since, known := r.created[claim]
		if !known {
			since = started
		}
		times = append(times, max(0, when.Sub(since)))
		result.Seconds = max(result.Seconds, when.Sub(started).Seconds())
	}
	result.Latency = latencyOf(times)
	if len(bound) > 0 {
		result.PerSecond = float64(len(bound)) / result.Seconds
		result.WritesPerBind = float64(result.Writes.total()) / float64(len(bound))
		result.CPUPerBind = milliseconds(result.CPUSeconds * 1000 / float64(len(bound)))
	}
	return result, nil
}

func creation(w workload) string {
	if w.order == volumesFirst {
		return "POST persistentvolumeclaims"
	}
	return "POST persistentvolumes"
}

// wrong counts claims that didn't get the volume which is theirs. Where all are
// alike, any is.
func (r *race) wrong() (int, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(r.ctx, claims); err != nil {
		return 0, fmt.Errorf("listing claims: %w", err)
	}
	taken, wrong := map[string]bool{}, 0
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Phase != corev1.ClaimBound || *claim.Spec.StorageClassName != class {
			continue
		}
		volume := claim.Spec.VolumeName
		if taken[volume] || r.workload.different && volume != volumeOf(claim.Name) {
			wrong++
		}
		taken[volume] = true
	}
	return wrong, nil
}
