package doctor

// report runs all checks.
func report(o *objects) *Report {
	r := &Report{}
	for _, check := range []func(*objects) []Check{versions, api, manager, agents, rights, drivers, registered, propagation, nodes, clocks, defaults, backends, binders, unknowable} {
		r.Checks = append(r.Checks, check(o)...)
	}
	for i := range r.Checks {
		if r.Checks[i].Result == Failed {
			r.Failed++
		}
	}
	return r
}
