package gcemock_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
)

// call makes a call with a body of JSON, or none, and returns the answer.
func (c *cloud) call(verb, path, body string) (status int, answer string) {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), verb, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestWhatIsNotServedIsNeverNotFound(t *testing.T) {
	c := open(t, options(t))
	c.makeDisk("data")
	disks := "/compute/v1/projects/" + project + "/zones/" + zone + "/disks"
	for name, test := range map[string]struct{ verb, path, body string }{
		"a method":                         {http.MethodGet, disks + "/data/getIamPolicy", ""},
		"a verb":                           {http.MethodPut, disks + "/data", ""},
		"a resource":                       {http.MethodGet, "/compute/v1/projects/" + project + "/global/networks", ""},
		"a parameter":                      {http.MethodGet, disks + "?view=FULL", ""},
		"another form of answers":          {http.MethodGet, disks + "?alt=media", ""},
		"an encryption key":                {http.MethodPost, disks, `{"name":"a","sizeGb":"10","diskEncryptionKey":{"rawKey":"k"}}`},
		"a confidential disk":              {http.MethodPost, disks, `{"name":"a","sizeGb":"10","enableConfidentialCompute":true}`},
		"resource policies":                {http.MethodPost, disks, `{"name":"a","sizeGb":"10","resourcePolicies":["daily"]}`},
		"tags of a snapshot":               {http.MethodPost, disks + "/data/createSnapshot", `{"name":"a","params":{"resourceManagerTags":{"k":"v"}}}`},
		"a field of beta alone":            {http.MethodPost, strings.Replace(disks, "v1", "beta", 1), `{"name":"a","sizeGb":"10","multiWriter":true}`},
		"a snapshot that flushes":          {http.MethodPost, disks + "/data/createSnapshot", `{"name":"a","guestFlush":true}`},
		"an update of labels":              {http.MethodPatch, disks + "/data?paths=labels", `{"labels":{"a":"b"}}`},
		"an image from a file":             {http.MethodPost, "/compute/v1/projects/" + project + "/global/images", `{"name":"a","rawDisk":{"source":"gs://a"}}`},
		"a conversion, which alpha has":    {http.MethodPost, strings.Replace(disks, "v1", "alpha", 1) + "/data/convert", `{}`},
		"an NVMe interface":                {http.MethodPost, "/compute/v1/projects/" + project + "/zones/" + zone + "/instances/node/attachDisk", `{"source":"` + diskLink("data") + `","interface":"NVME"}`},
		"a disk made with its attachment":  {http.MethodPost, "/compute/v1/projects/" + project + "/zones/" + zone + "/instances/node/attachDisk", `{"initializeParams":{"diskName":"a"}}`},
		"force for a new instance":         {http.MethodPost, "/compute/v1/projects/" + project + "/zones/" + zone + "/instances", `{"name":"a","disks":[{"source":"regions/europe-west3/disks/a","forceAttach":true}]}`},
		"an encryption key for attachment": {http.MethodPost, "/compute/v1/projects/" + project + "/zones/" + zone + "/instances/node/attachDisk", `{"source":"` + diskLink("data") + `","diskEncryptionKey":{"rawKey":"k"}}`},
	} {
		status, answer := c.call(test.verb, test.path, test.body)
		if status != http.StatusNotImplemented || !strings.Contains(answer, `"reason": "notImplemented"`) {
			t.Errorf("%s is answered with %d %s", name, status, answer)
		}
	}
}

func TestAPathOutsideTheAPIIsNoAnswerOfTheAPI(t *testing.T) {
	c := open(t, options(t))
	for _, path := range []string{"/", "/compute/v1/v2/projects/" + project, "/compute/v2/projects/" + project, "/v3/projects/" + project} {
		if status, answer := c.call(http.MethodGet, path, ""); status != http.StatusNotFound || strings.Contains(answer, "notFound") {
			t.Errorf("%s is answered with %d %s", path, status, answer)
		}
	}
}

func TestAnEmptyFieldIsNotRefused(t *testing.T) {
	c := open(t, options(t))
	status, answer := c.call(http.MethodPost, "/compute/beta/projects/"+project+"/zones/"+zone+"/disks",
		`{"name":"a","sizeGb":"10","multiWriter":false,"resourcePolicies":[],"diskEncryptionKey":null,"status":"READY"}`)
	if status != http.StatusOK {
		t.Errorf("it is answered with %d %s", status, answer)
	}
}

func TestAFieldThatGoogleDoesNotHaveIsAnError(t *testing.T) {
	c := open(t, options(t))
	status, answer := c.call(http.MethodPost, "/compute/v1/projects/"+project+"/zones/"+zone+"/disks",
		`{"name":"a","sizeGb":"10","colour":"red"}`)
	if status != http.StatusBadRequest || !strings.Contains(answer, "parseError") {
		t.Errorf("it is answered with %d %s", status, answer)
	}
}

func TestEachVersionLinksToItself(t *testing.T) {
	c := open(t, options(t))
	c.makeDisk("data")
	for _, version := range []string{"v1", "beta", "alpha"} {
		service := *c.Service
		service.BasePath = c.url + "/compute/" + version + "/"
		disk, err := compute.NewDisksService(&service).Get(project, zone, "data").Do()
		if err != nil || disk.SelfLink != service.BasePath+diskLink("data") {
			t.Errorf("%s answers %+v %v", version, disk, err)
		}
	}
}

func TestAnOperationOfAnotherVersionIsTheSame(t *testing.T) {
	c := open(t, options(t))
	beta := *c.Service
	beta.BasePath = c.url + "/compute/beta/"
	c.done(compute.NewDisksService(&beta).Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).Do())
	if disk := c.disk("data"); disk.Status != "READY" {
		t.Errorf("the disk is %+v", disk)
	}
}

func TestAnAnswerHasTheFieldsThatAreAskedFor(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	c.makeDisk("data")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	for fields, want := range map[string]string{
		"name,sizeGb":   `{"name":"data","sizeGb":"10"}`,
		"users":         `{"users":["` + c.url + `/compute/v1/projects/demo/zones/europe-west3-a/instances/node"]}`,
		"labels/team":   `{}`,
		"none":          `{}`,
		"name,name/any": `{"name":"data"}`,
	} {
		_, answer := c.call(http.MethodGet, "/compute/v1/"+diskLink("data")+"?fields="+fields, "")
		if got := strings.Join(strings.Fields(answer), ""); got != want {
			t.Errorf("%s gives %s, want %s", fields, got, want)
		}
	}
	for fields, want := range map[string]string{
		"items/disks/deviceName,nextPageToken":    `{"items":[{"disks":[{"deviceName":"data"}]}]}`,
		"items(name,disks(deviceName,mode)),kind": `{"items":[{"disks":[{"deviceName":"data","mode":"READ_WRITE"}],"name":"node"}],"kind":"compute#instanceList"}`,
		"items(name),items/status":                `{"items":[{"name":"node","status":"RUNNING"}]}`,
	} {
		_, answer := c.call(http.MethodGet, "/compute/v1/projects/"+project+"/zones/"+zone+"/instances?fields="+fields, "")
		if got := strings.Join(strings.Fields(answer), ""); got != want {
			t.Errorf("%s gives %s, want %s", fields, got, want)
		}
	}
	for _, broken := range []string{"items(", "items(name", "a,,b", "a)", "/a"} {
		if status, answer := c.call(http.MethodGet, "/compute/v1/"+diskLink("data")+"?fields="+broken, ""); status != http.StatusBadRequest {
			t.Errorf("%s gives %d %s", broken, status, answer)
		}
	}
}

func TestACallWithBrokenFieldsChangesNothing(t *testing.T) {
	c := open(t, options(t))
	_, err := c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).Fields("a(").Do()
	c.refused(err, http.StatusBadRequest, "invalidParameter")
	var refusal *googleapi.Error
	if _, err = c.Disks.Get(project, zone, "data").Do(); !errors.As(err, &refusal) || refusal.Code != http.StatusNotFound {
		t.Errorf("the disk was made: %v", err)
	}
}
