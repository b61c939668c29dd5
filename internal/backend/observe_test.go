package backend_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
)

func TestTheStateOfAMachineInTheCloud(t *testing.T) {
	node := backend.NodeIdentity{Name: "node-1"}
	for name, test := range map[string]struct {
		failure error
		want    backend.Machine
		returns bool
		logs    string
	}{
		"its state":                   {nil, backend.MachineStopped, false, ""},
		"an answer is still to come":  {backend.Queued.Errorf("waiting"), backend.MachineUnknown, true, ""},
		"work goes on":                {backend.InProgress.Errorf("waiting"), backend.MachineUnknown, true, ""},
		"the cloud doesn't answer":    {backend.Unavailable.Errorf("503"), backend.MachineUnknown, false, "503"},
		"something that has no kind":  {errors.New("broken pipe"), backend.MachineUnknown, false, "broken pipe"},
		"the backend isn't permitted": {backend.Invalid.Errorf("403"), backend.MachineUnknown, false, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged []string
			log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
			cloud := fake.New()
			cloud.SetMachine(node, backend.MachineStopped)
			cloud.FailObserving(test.failure)
			machine, err := backend.Observe(logr.NewContext(t.Context(), log), cloud, node)
			if machine != test.want || (err != nil) != test.returns {
				t.Errorf("it answers %q, %v", machine, err)
			}
			if all := strings.Join(logged, "\n"); (test.logs == "") != (all == "") || !strings.Contains(all, test.logs) {
				t.Errorf("it logs %q", all)
			}
		})
	}
}

func TestABackendWithoutMachinesReportsUnknown(t *testing.T) {
	machine, err := backend.Observe(context.Background(), struct{ backend.Backend }{fake.New()}, backend.NodeIdentity{Name: "node-1"})
	if machine != backend.MachineUnknown || err != nil {
		t.Errorf("it answers %q, %v", machine, err)
	}
}
