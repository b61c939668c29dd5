package naming_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
)

// requestFor is a request by a claim of this namespace, name and uid.
func requestFor(namespace, name, uid string) backend.Request {
	request := backendtest.Request(uid)
	request.Claim.Namespace, request.Claim.Name = namespace, name
	return request
}

func TestADirectoryIsNamedByTheTemplate(t *testing.T) {
	request := requestFor("team-a", "data", "1234")
	request.Labels = map[string]string{"app.kubernetes.io/name": "db", "empty": ""}
	request.Annotations = map[string]string{
		"path": "a/b", "words": "two words\n", "way-out": "../../etc", "way-out-inside": "a/../..", "dots": "..", "hidden": ".stowage",
		"root": "/etc", "umlaut": "größe", "fields": "{{uid}}",
	}
	for template, test := range map[string]struct{ want, problem string }{
		"":                                    {want: "team-a-data-1234"},
		"{{namespace}}/{{name}}":              {want: "team-a/data"},
		"pvc-{{uid}}":                         {want: "pvc-1234"},
		"{{labels.app.kubernetes.io/name}}":   {want: "db"},
		"{{annotations.path}}-{{uid}}":        {want: "a_b-1234"},
		"{{annotations.words}}-{{uid}}":       {want: "two_words_-1234"},
		"{{annotations.umlaut}}-{{uid}}":      {want: "gr__e-1234"},
		"{{annotations.root}}/{{uid}}":        {want: "_etc/1234"},
		"{{annotations.fields}}":              {want: "__uid__"},
		"{{annotations.way-out}}/{{uid}}":     {problem: "leads out of a directory"},
		"x{{annotations.way-out}}{{uid}}":     {problem: "leads out of a directory"},
		"{{annotations.way-out-inside}}":      {problem: "leads out of a directory"},
		"{{annotations.dots}}/{{uid}}":        {problem: "leads out of a directory"},
		"{{annotations.hidden}}/{{uid}}":      {problem: "begins with a dot"},
		"{{annotations.absent}}/{{uid}}":      {problem: "the claim has no value for {{annotations.absent}}"},
		"{{labels.empty}}":                    {problem: "the claim has no value for {{labels.empty}}"},
		"{{owner}}":                           {problem: "unknown field {{owner}}"},
		"{{uid}":                              {problem: "a field is written"},
		"{{{uid}}}":                           {problem: "a field is written"},
		"/{{uid}}":                            {problem: "absolute path"},
		"{{uid}}/":                            {problem: "empty part"},
		"a//{{uid}}":                          {problem: "empty part"},
		"../{{uid}}":                          {problem: "begins with a dot"},
		"a/../{{uid}}":                        {problem: "begins with a dot"},
		"./{{uid}}":                           {problem: "begins with a dot"},
		".stowage/volumes/{{uid}}":            {problem: "begins with a dot"},
		"a/.stowage/{{uid}}":                  {problem: "begins with a dot"},
		"{{uid}}\n":                           {problem: "other characters"},
		"{{uid}};reboot":                      {problem: "other characters"},
		strings.Repeat("long/", 250) + "last": {problem: "longer than"},
	} {
		t.Run(template, func(t *testing.T) {
			got, err := naming.Directory(template, request)
			if test.problem == "" && (got != test.want || err != nil) {
				t.Errorf("it is %q, %v, not %q", got, err, test.want)
			}
			if test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the answer is %q, %v, not that %s", got, err, test.problem)
			}
		})
	}
}

func TestALongNameIsTruncatedAndStaysUnique(t *testing.T) {
	long := strings.Repeat("n", 253)
	one, errOne := naming.Directory("", requestFor("team-a", long, "1"))
	two, errTwo := naming.Directory("", requestFor("team-a", long, "2"))
	if errOne != nil || errTwo != nil || one == two || len(one) != naming.MaxPart {
		t.Errorf("the directories are %s and %s", one, two)
	}
}
