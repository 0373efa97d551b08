"""What an agent may do: policy, remembered decisions and grants, and a person who is asked. Knows neither SDK."""
