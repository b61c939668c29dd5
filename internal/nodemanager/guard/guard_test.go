package guard

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestWhichNodesHaveAKubelet(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(-d))) }
	tests := map[string]struct {
		version string
		renewed *metav1.MicroTime
		has     bool
	}{
		"no sign of one":              {"", nil, false},
		"it registered":               {"v1.37.1", nil, true},
		"it registered and is alive":  {"v1.37.1", ago(time.Second), true},
		"it registered long ago":      {"v1.37.1", ago(time.Hour), true},
		"heartbeats only":             {"", ago(39 * time.Second), true},
		"heartbeats that have ceased": {"", ago(41 * time.Second), false},
		"a clock that is ahead":       {"", ago(-time.Hour), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: test.version}}}
			err := judge(node, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: test.renewed}}, now)
			if errors.Is(err, ErrKubelet) != test.has || (err != nil) != test.has {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestANodeThatIsNotRegisteredIsWaitedForAndSaidToBe(t *testing.T) {
	guard := &Guard{NodeName: "n1", Live: fake.NewClientBuilder().Build(), Clock: clocktesting.NewFakeClock(time.Now())}
	if err := guard.check(t.Context()); !errors.Is(err, errUnknownNode) {
		t.Errorf("got %v", err)
	}
	if guard.Ready(nil) == nil {
		t.Error("the agent is ready")
	}
}

func TestAnAgentIsNotReadyWhileItBeginsAndIsStoppedAllTheSame(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	begins, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	guard := &Guard{
		NodeName: "n1", Live: fake.NewClientBuilder().WithObjects(node).Build(), Clock: clocktesting.NewFakeClock(time.Now()),
		Begin: func() error {
			close(begins)
			<-never
			return nil
		},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- guard.Start(ctx) }()
	<-begins
	if guard.Ready(nil) == nil {
		t.Error("it is ready before it has begun")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
