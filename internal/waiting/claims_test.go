package waiting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/waiting"
)

func TestClaimsThatWaitAreCountedByReasonWithTheAgeOfTheOldest(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	registry := prometheus.NewPedanticRegistry()
	claims, err := waiting.New(registry, clocktesting.NewFakePassiveClock(now))
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	claims.Set(named("a"), "ProvisioningFailed", now.Add(-time.Minute))
	claims.Set(named("b"), "ProvisioningFailed", now.Add(-time.Hour))
	claims.Set(named("c"), "WaitForFirstConsumer", now.Add(time.Second))
	claims.Set(named("d"), "Provisioning", now)
	claims.Set(named("d"), "WaitForFirstConsumer", now)
	claims.Set(named("gone"), "Provisioning", now)
	claims.Forget(named("gone"))

	want := `# HELP stowage_claims_waiting Claims that wait for a volume, by the reason in their condition Bindable.
# TYPE stowage_claims_waiting gauge
stowage_claims_waiting{reason="ProvisioningFailed"} 2
stowage_claims_waiting{reason="WaitForFirstConsumer"} 2
# HELP stowage_claims_waiting_oldest_seconds Age of the oldest claim that waits for a volume, by reason.
# TYPE stowage_claims_waiting_oldest_seconds gauge
stowage_claims_waiting_oldest_seconds{reason="ProvisioningFailed"} 3600
stowage_claims_waiting_oldest_seconds{reason="WaitForFirstConsumer"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestNoClaimsRecordNothing(*testing.T) {
	var none *waiting.Claims
	none.Set(types.NamespacedName{Name: "a"}, "Provisioning", time.Now())
	none.Forget(types.NamespacedName{Name: "a"})
}
