package frame

// closer is a Peer whose connection can end before the answer.
type closer interface{ CloseStream() bool }

// CloseStream ends the connection that waits for the answer, if the client can
// come back for it: a long call then holds no connection. What is sent later,
// and the answer, wait for the client, which comes back after a while.
//
// It returns false, and does nothing, where that is not possible: it takes a
// client of revision 2025-11-25, over HTTP, that accepts streams, and a server
// with the option Polling and with a history of events. (basic/transports of
// 2025-11-25, "Sending Messages to the Server".)
func (f *Frame) CloseStream() bool {
	peer, ok := f.root.peer.(closer)
	return ok && peer.CloseStream()
}
