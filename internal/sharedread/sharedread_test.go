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

	ask := func(key string) {
		shared, to := reads.join(context.Background(), key), answer
		go func() {
			<-shared.done
			to <- shared.value
		}()
	}

	It("answers nobody with what was read before they asked", func() {
		ask("a")
		Eventually(held.begun).Should(Receive())
		ask("a")

		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(1)))
		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
	})

	It("is made once for all who ask while another is under way", func() {
		ask("a")
		Eventually(held.begun).Should(Receive())
		for range 5 {
			ask("a")
		}

		held.let <- nil
		held.let <- nil
		Eventually(answer).Should(HaveLen(6))
		Expect(held.number.Load()).To(BeEquivalentTo(2))
	})

	It("is shared by who asks in the pause before it", func() {
		reads.Paced()
		ask("a")
		Eventually(held.begun).Should(Receive())
		ask("a")
		// The longer the first one takes, the longer the pause before the second.
		Consistently(held.begun, "200ms").ShouldNot(Receive())
		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(1)))
		ask("a")

		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
	})

	It("waits for no read of another thing", func() {
		ask("a")
		Eventually(held.begun).Should(Receive())
		ask("b")

		Eventually(held.begun).Should(Receive())
		held.let <- nil
		held.let <- nil
		Eventually(answer).Should(HaveLen(2))
	})

	It("tells its error to all who share it, and the next one is made anew", func() {
		away := errors.New("away")
		go func() { held.let <- away }()
		_, err := reads.Get(context.Background(), "a")
		Expect(err).To(MatchError(away))

		go func() { held.let <- nil }()
		Expect(reads.Get(context.Background(), "a")).To(BeEquivalentTo(2))
	})

	It("isn't waited for by who has left, and goes on for the others", func() {
		ctx, leave := context.WithCancel(context.Background())
		leave()
		_, err := reads.Get(ctx, "a")
		Expect(err).To(MatchError(context.Canceled))
		Eventually(held.begun).Should(Receive())

		ask("a")
		held.let <- nil
		held.let <- nil
		Eventually(answer).Should(Receive(BeEquivalentTo(2)))
	})
})
