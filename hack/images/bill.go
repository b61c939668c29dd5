package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// installed finds packages and their versions in what dpkg records.
var installed = regexp.MustCompile(`(?m)^Package: (\S+)\n(?:.+\n)*?Version: (\S+)$`)

// bill is the SBOM of an image: the modules of its Go programs, and the Debian packages that
// its files are of, by their package URLs. The same image has the same.
func (t tree) bill(from sources, tag name.Tag, built v1.Image) (*v2_3.Document, error) {
	digest, err := built.Digest()
	if err != nil {
		return nil, err
	}
	contained, err := t.debianPackages(from)
	if err != nil {
		return nil, err
	}
	t.addModules(tag.TagStr(), contained)
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: tag.String() + " for " + from.arch,
		DocumentNamespace: "https://stowage.dev/spdx/" + tag.RepositoryStr() + "/" + digest.Hex,
		CreationInfo:      &v2_3.CreationInfo{Created: os.Getenv("CREATED"), Creators: []common.Creator{{CreatorType: "Tool", Creator: "stowage-images"}}},
	}
	image := "pkg:oci/" + filepath.Base(tag.RepositoryStr()) + "@" + digest.String() + "?arch=" + from.arch
	relation, above := "DESCRIBES", document.SPDXIdentifier
	for i, url := range append([]string{image}, slices.Sorted(maps.Keys(contained))...) {
		path, _, _ := strings.Cut(url, "?")
		at := strings.LastIndex(path, "@")
		id := common.ElementID(fmt.Sprintf("Package-%d", i))
		document.Packages = append(document.Packages, &v2_3.Package{
			PackageSPDXIdentifier: id, PackageName: path[len("pkg:"):at], PackageVersion: path[at+1:], PackageDownloadLocation: "NOASSERTION",
			PackageExternalReferences: []*v2_3.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: url}},
		})
		document.Relationships = append(document.Relationships, &v2_3.Relationship{
			RefA: common.DocElementID{ElementRefID: above}, Relationship: relation, RefB: common.DocElementID{ElementRefID: id},
		})
		relation, above = "CONTAINS", "Package-0"
	}
	return document, nil
}

// addModules adds the URLs of the modules that the tree's Go programs are built of.
func (t tree) addModules(version string, contained map[string]bool) {
	for _, file := range t {
		info, err := buildinfo.Read(bytes.NewReader(file.content))
		if err != nil {
			continue // It is no Go program.
		}
		contained["pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go")] = true
		contained["pkg:golang/"+info.Main.Path+"@"+version] = true
		for _, module := range info.Deps {
			module = cmp.Or(module.Replace, module)
			contained["pkg:golang/"+module.Path+"@"+module.Version] = true
		}
	}
}

// debianPackages are the URLs of the packages that files of the tree are of.
func (t tree) debianPackages(from sources) (map[string]bool, error) {
	status, err := os.ReadFile(from.path("/var/lib/dpkg/status"))
	found := map[string]bool{}
	for _, one := range installed.FindAllStringSubmatch(string(status), -1) {
		files, missing := os.ReadFile(from.path(packageLists + one[1] + ".list"))
		if one[1] == "ca-certificates" && t[certificateFile].content != nil || slices.ContainsFunc(strings.Fields(string(files)), func(name string) bool { return t[place(name)].content != nil }) {
			found["pkg:deb/debian/"+one[1]+"@"+one[2]+"?arch="+from.arch] = true
		}
		err = cmp.Or(err, missing)
	}
	return found, err
}
