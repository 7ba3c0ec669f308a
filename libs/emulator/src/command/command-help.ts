import { DEFAULT_PORT, DEFAULT_PRODUCTION_PORT } from './command-flags.js';

export const HELP = `payments-emulator: an emulator of the payments service

Usage: payments-emulator [flags]
       payments-emulator trigger EVENT-TYPE [flags]    sends an event from a running emulator;
                                                       trigger --help lists its flags
       payments-emulator webhooks|complete|decline|fault …
                                                       controls a running emulator: switches an
                                                       outage of deliveries on or off, completes
                                                       and declines transactions, sets faults;
                                                       webhooks --help describes all four
       payments-emulator watch|replay ID|send --file FILE
                                                       prints the webhook requests of a running
                                                       emulator, sends one again, or signs and sends
                                                       a file; watch --help describes all three

Addresses
  --port N                        sandbox host; 0 selects a free port (default ${DEFAULT_PORT})
  --production-port N             production host; 0 selects a free port (default ${DEFAULT_PRODUCTION_PORT})
  --host ADDRESS                  default 127.0.0.1, this machine only; 0.0.0.0 for all networks
  --public-url URL                URL of the sandbox as clients see it, e.g. http://emulator:4010
  --production-public-url URL     the same for the production host

Access from other machines (if --host or --public-url is not loopback)
  --control-token TOKEN           token that the controls and pages require: as the password in a browser,
                                  or in Authorization: Bearer; 16 to 256 characters (default: a generated
                                  one, printed at each start)
  --allow-private-webhooks        webhook URLs may point to this machine and private networks, and may
                                  be http:// there
  --allow-production              allows NODE_ENV=production

Credentials and webhook of the company; values that are not given are generated
  --webhook-url URL               https://, or http:// on a loopback host; see also
                                  --allow-private-webhooks
  --companies IDS                 starts with several companies, e.g. acme,umbrella; the webhook URL of each
                                  company is --webhook-url, a slash and the company's id; the names of the
                                  settings of acme start with ACME_, for example ACME_CLIENT_ID
  --webhook-secret SECRET
  --client-id ID                  sandbox credentials
  --client-secret SECRET
  --production-client-id ID       production credentials
  --production-client-secret SECRET

Behaviour
  --seed TEXT                     same credentials, secrets and faults at every start
  --save-env FILE                 also saves the settings of the application in a .env file; keeps the other
                                  lines of the file, and does not start if one of these lines sets one of
                                  the settings to another value
  --redeliver WAITS               waits before further attempts of a failed delivery, e.g. 1s,30s,5m
                                  (default none; the service documents no schedule)
  --faults JSON                   a fault plan, e.g. '{"delivery":{"duplicate":{}}}'
  --service-name NAME             User-Agent is NAME-Webhook/1.0 (default PaymentsEmulator)
  --token-lifetime SECONDS        default 3599
  --pending-status WORD           status of a transaction before it is complete (default pending)
  --failed-status WORD            status of a declined transaction (default failed)
  --currency CODE                 currency that the pages show with amounts (default KES)
  --log-size N                    number of attempts in the delivery log (default 1000)

  -q, --quiet                     does not print a line for each delivery
  -h, --help                      prints this help
  -v, --version                   prints the version

Exit codes: 0 closed by a signal, 1 did not start, 2 invalid flags.
`;
