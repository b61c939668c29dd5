// Package explain is the verb explain of kubectl stowage. It shows the chain from a pod, a claim or
// a volume object to the bytes on a disk, the first thing in it that is wrong, and what to do.
//
// cmd/kubectl-stowage calls it. It only reads: load.go reads the objects, the files named
// after their kinds judge them without a client, and print.go prints.
package explain

// State is how one link of the chain is.
type State string

// States. Waiting is the effect of another link, or of work in progress; Wrong needs a person;
// Unknown couldn't be read.
const (
	OK      State = "OK"
	Waiting State = "Waiting"
	Wrong   State = "Wrong"
	Unknown State = "Unknown"
)

// Link is one object of the chain.
type Link struct {
	// Depth is how many links lead to it.
	Depth int    `json:"depth"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State State  `json:"state"`
	// Says is what the object records, in a sentence.
	Says string `json:"says,omitempty"`
	// Do is what to do about it, where the object's own message doesn't say it.
	Do string `json:"do,omitempty"`

	// forPod means that the link waits for the pod above it, which has the cause.
	forPod bool
}

// Report is the whole chain.
type Report struct {
	Links []Link `json:"chain"`
	// Problem is the first link that is Wrong; else the last that is Waiting or Unknown, which
	// is the nearest to the cause. Nil: there is no problem.
	Problem *Link `json:"problem,omitempty"`
}

// judge finds the problem of a chain.
func judge(links []Link) *Report {
	report := &Report{Links: links}
	for _, state := range []State{Waiting, Unknown} {
		for i := range links {
			if links[i].State == state && (report.Problem == nil || !links[i].forPod) {
				report.Problem = &links[i]
			}
		}
		if report.Problem != nil {
			break
		}
	}
	for i := range links {
		if links[i].State == Wrong {
			report.Problem = &links[i]
			break
		}
	}
	return report
}

// unreadable is the link of an object that the user may not read.
func unreadable(kind, name string) Link {
	return Link{Kind: kind, Name: name, State: Unknown, Says: "you may not read it", Do: "ask an administrator for the right to get this object, or to run this command"}
}
