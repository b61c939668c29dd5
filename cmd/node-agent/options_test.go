package main

import (
	"cmp"
	"strings"
	"testing"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	tests := map[string]struct {
		options options
		flag    string
	}{
		"all is well":                     {options{nodeName: "n1", rootDir: "/a/", localBase: "/b"}, ""},
		"no node":                         {options{rootDir: "/a", localBase: "/b"}, "--node-name"},
		"a relative root":                 {options{nodeName: "n1", rootDir: "a", localBase: "/b"}, "--root-dir"},
		"the whole machine":               {options{nodeName: "n1", rootDir: "/a", localBase: "/x/.."}, "--local-base"},
		"no base":                         {options{nodeName: "n1", rootDir: "/a"}, "--local-base"},
		"a base in the root":              {options{nodeName: "n1", rootDir: "/a", localBase: "/a/pods"}, "--local-base"},
		"a base that the root":            {options{nodeName: "n1", rootDir: "/a", localBase: "/a"}, "--local-base"},
		"fewer disks than none":           {options{nodeName: "n1", rootDir: "/a", localBase: "/b", maxDisks: -1}, "--max-disks"},
		"disks in a relative folder":      {options{nodeName: "n1", rootDir: "/a", localBase: "/b", deviceDir: "dev"}, "--device-dir"},
		"a folder to recycle in":          {options{nodeName: "n1", rootDir: "/a", localBase: "/b", recycleRoot: "/c/"}, ""},
		"the whole machine to recycle in": {options{nodeName: "n1", rootDir: "/a", localBase: "/b", recycleRoot: "/c/.."}, "--recycle-root"},
		"a kubelet's folder":              {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "/k/"}, ""},
		"a relative kubelet's folder":     {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "k"}, "--kubelet-dir"},
		"a kubelet, and no kubelet":       {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "/k", followPods: true}, "--follow-pods"},
		"recycling at the kubelet's":      {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "/k", recycleRoot: "/k/pods"}, "--recycle-root"},
		"recycling in the base":           {options{nodeName: "n1", rootDir: "/a", localBase: "/b", recycleRoot: "/b/c"}, "--recycle-root"},
		"recycling around the root":       {options{nodeName: "n1", rootDir: "/c/a", localBase: "/b", recycleRoot: "/c"}, "--recycle-root"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.deviceDir = cmp.Or(test.options.deviceDir, "/dev/disk/by-id")
			err := test.options.check()
			if test.flag == "" && err != nil || test.flag != "" && (err == nil || !strings.Contains(err.Error(), test.flag)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
