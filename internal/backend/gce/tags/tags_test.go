package tags

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

func TestTheTagsOfAClassAreReadOrRefused(t *testing.T) {
	listed := func(count int) string {
		all := make([]string, count)
		for i := range all {
			all[i] = fmt.Sprintf("123/key-%d/v", i)
		}
		return strings.Join(all, ",")
	}
	for name, test := range map[string]struct {
		list    string
		want    map[string]string
		problem string
	}{
		"of an organization":          {"123456789/env/prod", map[string]string{"123456789/env": "prod"}, ""},
		"of a project":                {"shop-project/cost.center/A7", map[string]string{"shop-project/cost.center": "A7"}, ""},
		"of a project of a domain":    {"example.com:shop-project/env/prod", map[string]string{"example.com:shop-project/env": "prod"}, ""},
		"with a value of signs":       {"123/env/a @%=+:*#&()[]{}.z", map[string]string{"123/env": "a @%=+:*#&()[]{}.z"}, ""},
		"two":                         {"123/env/prod, 456/env/test", map[string]string{"123/env": "prod", "456/env": "test"}, ""},
		"a long value":                {"123/env/" + strings.Repeat("v", 63), map[string]string{"123/env": strings.Repeat("v", 63)}, ""},
		"a value that is too long":    {"123/env/" + strings.Repeat("v", 64), nil, "63 characters at most"},
		"a key that is too long":      {"123/" + strings.Repeat("k", 64) + "/v", nil, "63 characters at most"},
		"the same key twice":          {"123/env/prod,123/env/test", nil, "has the key 123/env twice"},
		"the same tag twice":          {"123/env/prod,123/env/prod", nil, "has the key 123/env twice"},
		"more than 50":                {listed(51), nil, "more than 50 tags"},
		"nothing":                     {"", nil, "write PARENT/KEY/VALUE"},
		"without a parent":            {"env/prod", nil, `has "env/prod"`},
		"with a part too many":        {"organizations/123/env/prod", nil, "write PARENT/KEY/VALUE"},
		"a number that begins with 0": {"0123/env/prod", nil, "PARENT is the id of an organization or a project"},
		"a key that ends with a dot":  {"123/env./prod", nil, "a letter or digit first and last"},
		"a value that is empty":       {"123/env/", nil, "write PARENT/KEY/VALUE"},
		"a value of two lines":        {"123/env/a\nb", nil, "write PARENT/KEY/VALUE"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(test.list)
			if !maps.Equal(got, test.want) {
				t.Errorf("they are %v", got)
			}
			if test.problem == "" && err != nil || test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if got, err := Of(listed(50)); err != nil || len(got) != 50 {
		t.Errorf("of 50 tags it reads %d: %v", len(got), err)
	}
}
