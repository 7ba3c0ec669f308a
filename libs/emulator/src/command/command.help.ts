import { DEFAULT_PORT, DEFAULT_PRODUCTION_PORT } from './command.flags.js';

/** What `--help` prints. */
export const HELP = `payments-emulator: an emulator of the payments service

Usage: payments-emulator [flags]
       payments-emulator trigger EVENT-TYPE [flags]    sends an event from a running emulator;
                                                       trigger --help lists its flags

Where it listens
  --port N                        sandbox host; 0 takes a free one (default ${DEFAULT_PORT})
  --production-port N             production host; 0 takes a free one (default ${DEFAULT_PRODUCTION_PORT})
  --host ADDRESS                  default 127.0.0.1, this machine only; 0.0.0.0 for all networks
  --public-url URL                the sandbox's address as others see it, e.g. http://emulator:4010
  --production-public-url URL     the same for the production host

If others can reach it (--host or --public-url is not loopback)
  --control-token TOKEN           what the controls and pages demand: as the password in a browser, or
                                  in Authorization: Bearer; 16 to 256 characters (default: a new one,
                                  printed at each start)
  --allow-private-webhooks        webhook URLs may lead to this machine and private networks, and may
                                  be http:// there
  --allow-production              starts with NODE_ENV=production

The company it starts with; whatever is not given is generated and printed
  --webhook-url URL               https://, or http:// on a loopback host; see also
                                  --allow-private-webhooks
  --webhook-secret SECRET
  --client-id ID                  sandbox credentials
  --client-secret SECRET
  --production-client-id ID       production credentials
  --production-client-secret SECRET

How it behaves
  --seed TEXT                     same credentials, secrets and faults at every start
  --save-env FILE                 also saves the settings of the application in a .env file; keeps its
                                  other variables, and refuses if they set these to other values
  --redeliver WAITS               waits before further attempts of a failed delivery, e.g. 1s,30s,5m
                                  (default none; the service does not show its schedule)
  --faults JSON                   a fault plan, e.g. '{"delivery":{"duplicate":{}}}'
  --service-name NAME             User-Agent is NAME-Webhook/1.0 (default PaymentsEmulator)
  --token-lifetime SECONDS        default 3599
  --pending-status WORD           a transaction's status before it is complete (default pending)
  --failed-status WORD            a declined transaction's status (default failed)
  --log-size N                    attempts the delivery log holds (default 1000)

  -q, --quiet                     no line per delivery
  -h, --help                      prints this
  -v, --version                   prints the version

Exit codes: 0 closed by a signal, 1 did not start, 2 wrong flags.
`;
