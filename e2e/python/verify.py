"""Verifies with standardwebhooks what the lines of standard input have, and prints how many
are as they say."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

right = 0
for line in sys.stdin:
    case = json.loads(line)
    try:
        Webhook(case["secret"]).verify(case["body"], case["headers"])
        verified = True
    except WebhookVerificationError:
        verified = False
    right += verified == case["fits"]
print(right)
