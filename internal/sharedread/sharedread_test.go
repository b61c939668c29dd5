package sharedread

import (
	"context"
	"errors"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// heldReads is a read whose calls end when the test lets them, each with its number.
type heldReads struct {
	begun  chan struct{}
	let    chan error
	number atomic.Int32
}

func newHeldReads() *heldReads {
	return &heldReads{begun: make(chan struct{}, 10), let: make(chan error)}
}

func (h *heldReads) read(context.Context, string) (int32, error) {
	number := h.number.Add(1)
	h.begun <- struct{}{}
	return number, <-h.let
}

var _ = Describe("A shared read", func() {
	var (
		held   *heldReads
		reads  *Reads[string, int32]
		answer chan int32
	)

	BeforeEach(func() {
		held = newHeldReads()
		reads = New(held.read)
		answer = make(chan int32, 10)
	})

	get := func(key string) {
		shared, to := reads.join(context.Background(), key), answer
		go func() {
			<-shared.done
			to <- shared.value
		}()
	}

	It("answers no call with a value from before the call", func() {
		get("a")
		Eventually(held.begun).Should(Receive())
		get("a")

		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(1)))
		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
	})

	It("is made once for all calls while another is in flight", func() {
		get("a")
		Eventually(held.begun).Should(Receive())
		for range 5 {
			get("a")
		}

		held.let <- nil
		held.let <- nil
		Eventually(answer).Should(HaveLen(6))
		Expect(held.number.Load()).To(BeEquivalentTo(2))
	})

	It("is shared by calls in the pause before it", func() {
		reads.Paced()
		get("a")
		Eventually(held.begun).Should(Receive())
		get("a")
		// The longer the first one takes, the longer the pause before the second.
		Consistently(held.begun, "200ms").ShouldNot(Receive())
		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(1)))
		get("a")

		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
	})

	It("waits for no read of another thing", func() {
		get("a")
		Eventually(held.begun).Should(Receive())
		get("b")

		Eventually(held.begun).Should(Receive())
		held.let <- nil
		held.let <- nil
		Eventually(answer).Should(HaveLen(2))
	})

	It("returns its error to all that share it, and the next one is made again", func() {
		away := errors.New("away")
		go func() { held.let <- away }()
		_, err := reads.Get(context.Background(), "a")
		Expect(err).To(MatchError(away))

		go func() { held.let <- nil }()
		Expect(reads.Get(context.Background(), "a")).To(BeEquivalentTo(2))
	})

	It("goes on for the others after a caller's context ends", func() {
		ctx, leave := context.WithCancel(context.Background())
		leave()
		_, err := reads.Get(ctx, "a")
		Expect(err).To(MatchError(context.Canceled))
		Eventually(held.begun).Should(Receive())

		get("a")
		held.let <- nil
		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
	})
})
