package protocol

// TaskStatus is the state of a task (the extension
// io.modelcontextprotocol/tasks). A task begins as working and may alternate
// between that and input_required until it reaches a final state, which never
// changes.
type TaskStatus string

// The states of tasks. The last three are final.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Final reports whether a task in that state has ended.
func (s TaskStatus) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}
