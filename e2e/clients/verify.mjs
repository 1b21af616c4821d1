// Verifies with standardwebhooks what the lines of standard input have, and prints how many
// are as they say.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

let right = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body, fits } = JSON.parse(line);
  let verified = true;
  try {
    new Webhook(secret).verify(body, headers);
  } catch {
    verified = false;
  }
  if (verified === fits) right++;
}
console.log(right);
