package backendtest

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

// modified is a backend whose volumes can get other attributes.
type modified struct {
	subject
	// attributesOf returns the attributes that the volume with a handle has.
	attributesOf func(handle string) map[string]string
}

// ModifyContract runs the suite against a backend.Modifier. AttributesOf returns the parameters of the
// attributes that the volume with a handle has.
func ModifyContract(t *testing.T, open func(t *testing.T) (opened backend.Backend, attributesOf func(handle string) map[string]string)) {
	for name, test := range map[string]func(*testing.T, modified){
		"a volume is made with attributes, and gets others":                       testModify,
		"a repeat has the same outcome":                                           testModifyRepeat,
		"a repeat completes a cancelled change":                                   testModifyCancelled,
		"a change leaves other volumes as they are":                               testModifyOne,
		"a volume that is absent or deleted has no attributes":                    testModifyAbsent,
		"a volume that was changed is deleted, and made again as it is requested": testModifyThenDelete,
	} {
		t.Run(name, func(t *testing.T) {
			opened, attributesOf := open(t)
			if _, can := backend.As[backend.Modifier](opened); !can {
				t.Fatal("volumes of this backend have no attributes that can change")
			}
			test(t, modified{subject{Backend: opened}, attributesOf})
		})
	}
}

func testModify(t *testing.T, s modified) {
	made := s.mustMake(t, "1")
	s.mustHave(t, made, "a")
	for _, class := range []string{"b", "c", "a"} {
		s.mustModify(t, made, class)
		s.mustHave(t, made, class)
	}
}

func testModifyRepeat(t *testing.T, s modified) {
	made := s.mustMake(t, "1")
	for range 2 {
		s.mustModify(t, made, "b")
		s.mustHave(t, made, "b")
	}
}

func testModifyCancelled(t *testing.T, s modified) {
	made := s.mustMake(t, "1")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = backend.Modify(over, s.Backend, made, *attributes("b"))
	s.mustModify(t, made, "b")
	s.mustHave(t, made, "b")
}

func testModifyOne(t *testing.T, s modified) {
	made, other := s.mustMake(t, "1"), s.mustMake(t, "2")
	s.mustModify(t, made, "b")
	s.mustHave(t, other, "a")
}

func testModifyAbsent(t *testing.T, s modified) {
	made := s.mustMake(t, "1")
	s.mustDelete(t, made)
	if err := s.modify(made, "b"); !errors.Is(err, backend.NotFound) {
		t.Errorf("it got the answer %v", err)
	}
}

func testModifyThenDelete(t *testing.T, s modified) {
	made := s.mustMake(t, "1")
	s.mustModify(t, made, "b")
	s.mustDelete(t, made)
	s.mustDelete(t, made)
	again, err := s.provision(s.requestOf("1"))
	if errors.Is(err, backend.Invalid) {
		t.Skip("this backend makes no volume again under the name of one that was deleted")
	}
	if err != nil {
		t.Fatalf("making volume %s again: %v", made, err)
	}
	s.mustHave(t, again.Handle, "a")
}

// iops are what the classes say.
var iops = map[string]string{"a": "3000", "b": "4000", "c": "5000"}

func attributes(class string) *backend.Attributes {
	return &backend.Attributes{Class: class, Parameters: map[string]string{"iops": iops[class]}}
}

// requestOf is for a volume with the attributes of class a.
func (modified) requestOf(name string) backend.Request {
	request := Request(name)
	request.Attributes = attributes("a")
	return request
}

func (s modified) mustMake(t *testing.T, name string) (handle string) {
	t.Helper()
	return s.mustProvision(t, s.requestOf(name)).Handle
}

func (s modified) modify(handle, class string) error {
	return untilFinal(func() error { return backend.Modify(context.Background(), s.Backend, handle, *attributes(class)) })
}

func (s modified) mustModify(t *testing.T, handle, class string) {
	t.Helper()
	if err := s.modify(handle, class); err != nil {
		t.Fatalf("giving volume %s attributes of class %s: %v", handle, class, err)
	}
}

func (s modified) mustHave(t *testing.T, handle, class string) {
	t.Helper()
	if has := s.attributesOf(handle); !maps.Equal(has, attributes(class).Parameters) {
		t.Errorf("volume %s has the attributes %v, and not those of class %s", handle, has, class)
	}
}
