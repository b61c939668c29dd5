package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	scaleSamples = 20
	// scaleMemory leaves room, below the target, for what Go's runtime does not count.
	scaleMemory = "560MiB"
	// settling is how long a program rests until its memory is read: Go's runtime collects garbage every two
	// minutes if nothing else makes it.
	settling = 3 * time.Minute

	scaleColumns = "%-6s %7v %9s %9s %9s %7s %7s %7s %8s %8s %8s\n"
)

// scaleResult is what it takes to start beside pairs that are bound, and to stay beside them.
type scaleResult struct {
	Pairs int
	// Lists is the time until a program that only keeps all claims and volumes bound a claim of its own, and Ready
	// that of the program which is measured. Calm is the time until that has nothing more to do.
	Lists, Ready, Calm seconds
	// RAM that the program has when it is ready, at most, and after it did nothing for some minutes.
	ReadyMiB, PeakMiB, RestMiB float64
	// RestCPU is the part of a core that the program needs at rest.
	RestCPU float64
	// Late is from the creation of a volume that a claim waits for, Bind from that of a claim with a volume there.
	Late, Bind latency
}

type seconds float64

// measureScale starts the program beside many pairs that are bound. They get an API server of their own: what is in it
// needs no removing.
func (b *testbed) measureScale() (err error) {
	own, err := newTestbed(b.ctx, b.options, b.report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.stop()) }()
	fmt.Fprintf(b.report.out, "\n"+scaleColumns, "SCALE", "PAIRS", "LISTS s", "READY s", "CALM s", "MiB", "PEAK", "REST", "REST CPU", "LATE ms", "BIND ms")
	there := 0
	for _, pairs := range slices.Sorted(slices.Values(b.options.scales)) {
		err := inParallel(own.ctx, pairs-there, func(i int) error { return own.createBound(there+i, boundVolume) })
		if err != nil {
			return fmt.Errorf("making %d pairs: %w", pairs, err)
		}
		got, err := own.scaleRound(pairs)
		if err != nil {
			return fmt.Errorf("beside %d pairs: %w", pairs, err)
		}
		there = pairs
		b.report.Scales = append(b.report.Scales, got)
		fmt.Fprintf(b.report.out, scaleColumns, "", got.Pairs, decimals(1, got.Lists), decimals(1, got.Ready), decimals(1, got.Calm),
			decimals(0, got.ReadyMiB), decimals(0, got.PeakMiB), decimals(0, got.RestMiB), decimals(4, got.RestCPU),
			decimals(0, got.Late.Max), decimals(0, got.Bind.Max))
	}
	return nil
}

// scaleRound starts the program that only keeps the objects, and then the one that is measured. What it made itself is
// removed, so that the next size finds pairs alone.
func (b *testbed) scaleRound(pairs int) (got scaleResult, err error) {
	got.Pairs = pairs
	started := time.Now()
	keeping, err := b.startWorking(b.part(bareName, "bare-lists"))
	if err != nil {
		return got, err
	}
	got.Lists = seconds(time.Since(started).Seconds())
	keeping.stop()
	if err := b.removeCanary(); err != nil {
		return got, err
	}
	if _, err := b.awaitQuiet(); err != nil {
		return got, err
	}
	started = time.Now()
	subject := b.subject()
	subject.environment = []string{"GOMEMLIMIT=" + scaleMemory}
	running, err := b.startWorking(subject)
	if err != nil {
		return got, err
	}
	defer func() {
		running.stop()
		err = errors.Join(err, b.removeBeyond(pairs), b.removeCanary())
	}()
	got.Ready = seconds(time.Since(started).Seconds())
	err = b.measureBeside(&got, started, running)
	return got, err
}

// measureBeside measures a program that started.
func (b *testbed) measureBeside(got *scaleResult, started time.Time, running processes) error {
	ready, err := running.usage()
	if err != nil {
		return err
	}
	if _, err := b.awaitCalm(running); err != nil {
		return err
	}
	got.Calm = seconds(time.Since(started).Seconds())
	if got.Late, err = b.samples(lone, span{from: got.Pairs, n: 1}, scaleSamples, running); err != nil {
		return err
	}
	if got.Bind, err = b.samples(few, span{from: got.Pairs + scaleSamples, n: 1}, scaleSamples, running); err != nil {
		return err
	}
	before, err := b.awaitCalm(running)
	if err != nil {
		return err
	}
	select {
	case <-time.After(settling):
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
	rest, err := running.usage()
	got.RestCPU = (rest.cpu - before).Seconds() / settling.Seconds()
	got.ReadyMiB, got.PeakMiB, got.RestMiB = inMiB(ready.resident), inMiB(rest.peak), inMiB(rest.resident)
	return err
}

func inMiB(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func (b *testbed) removeCanary() error { return b.removePair(canary, canary) }

func (b *testbed) removePair(claim, volume string) error {
	return errors.Join(b.remove(fixture.Claim(fixture.ClaimNamed(claim))), b.remove(fixture.Volume(volume)))
}

// removeBeyond removes the pairs that samples made.
func (b *testbed) removeBeyond(pairs int) error {
	return inParallel(b.ctx, 2*scaleSamples, func(i int) error {
		return b.removePair(claimName(pairs+i), volumeName(pairs+i))
	})
}

// runBareLists keeps all claims and volumes, and binds the canary once it has them.
func runBareLists(ctx context.Context, kubeconfig string, _ []string) error {
	kinds := []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}}
	return runBare(ctx, kubeconfig, kinds, func(ctx context.Context, b bare) error {
		claim, volume := fixture.Claim(fixture.ClaimNamed(canary)), fixture.Volume(canary)
		err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
			missing := errors.Join(
				b.watched.Get(ctx, client.ObjectKeyFromObject(claim), claim), b.watched.Get(ctx, client.ObjectKeyFromObject(volume), volume),
			)
			return missing == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the canary: %w", err)
		}
		return bareBind(ctx, b, claim, volume)
	})
}
