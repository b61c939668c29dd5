package nfs

import (
	"errors"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
)

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
			got, err := directoryFor(template, request)
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
	one, errOne := directoryFor("", requestFor("team-a", long, "1"))
	two, errTwo := directoryFor("", requestFor("team-a", long, "2"))
	must(t, errOne, errTwo)
	if one == two || len(one) != maxPart {
		t.Errorf("the directories are %s and %s", one, two)
	}
}

func TestAnArchivesNameFitsAFileSystem(t *testing.T) {
	volume := record{Owner: backend.Owner{ID: "pvc-" + strings.Repeat("0", 36) + "-12"}}
	volume.Claim.Namespace, volume.Claim.Name = strings.Repeat("a", 63), strings.Repeat("b", 253)
	if name := archiveName(volume) + ".json"; len(name) != maxPart || !strings.HasSuffix(name, volume.ID+".json") {
		t.Errorf("it is %s, of %d characters", name, len(name))
	}
}
