package reason

import (
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

func TestARegionsQuotaIsAQuota(t *testing.T) {
	for _, code := range []string{"REGION_QUOTA_EXCEEDED", "QUOTA_EXCEEDED", "regionQuotaExceeded"} {
		if kind := meaningOf(&operationError{code: code}).kind; kind != backend.Exhausted {
			t.Errorf("%s is %q", code, kind)
		}
	}
	if kind := meaningOf(&operationError{code: "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"}).kind; kind != backend.Unavailable {
		t.Errorf("too many operations at once are %q", kind)
	}
}

func TestAnOperationThatFailsIsNotDone(t *testing.T) {
	for name, ended := range map[string]*compute.Operation{
		"with errors":        {Error: &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: "X"}}}},
		"with none of them":  {Error: &compute.OperationError{}},
		"with a status only": {HttpErrorStatusCode: 503},
	} {
		if Failure(ended) == nil {
			t.Errorf("%s: it is", name)
		}
	}
	if err := Failure(&compute.Operation{HttpErrorStatusCode: 0}); err != nil {
		t.Errorf("one that ended well: %v", err)
	}
}
