package harness

type AmountForm struct {
	Amount int `json:"amount"`
}
