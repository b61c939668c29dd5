package gcemock

// Methods are the names of all methods that are served.
func Methods() []string { return methods() }

// EndJournal makes every further line of the journal fail to be written.
func (s *Server) EndJournal() error {
	s.engine.Lock()
	defer s.engine.Unlock()
	return s.engine.journal.file.Close()
}
