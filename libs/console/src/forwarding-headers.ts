/** Names of request headers that a proxy adds and no browser sends, in lower case; a trailing `*` matches any suffix. */
export const FORWARDING_HEADERS: Readonly<Record<string, readonly string[]>> = {
  // RFC 7239, RFC 9110 and RFC 8586.
  standard: ['forwarded', 'via', 'cdn-loop'],
  'common practice': [
    'x-forwarded*',
    'forwarded-*',
    'x-original-*',
    'x-real-ip',
    'x-real-port',
    'x-scheme',
    'x-url-scheme',
    'front-end-https',
    'client-ip',
    'x-client-ip',
    'x-remote-ip',
    'x-remote-addr',
    'x-originating-ip',
    'x-cluster-client-ip',
    'true-client-ip',
    'x-true-client-ip',
    'x-proxyuser-ip',
    'x-request-start',
    'proxy-client-ip',
    'wl-proxy-*',
    'x-host',
    'x-proxied-*',
    'x-auth-request-*',
  ],
  Akamai: ['akamai-*', 'x-akamai-*', 'x-edgeconnect-*'],
  'Amazon Web Services': ['x-amzn-*', 'x-amz-cf-*', 'cloudfront-*'],
  Azure: [
    'x-azure-*',
    'x-arr-*',
    'x-appgw-*',
    'x-fd-*',
    'x-ms-client-*',
    'x-waws-*',
    'x-site-deployment-id',
    'disguised-host',
    'was-default-hostname',
  ],
  Bunny: ['cdn-*'],
  Cloudflare: ['cf-*'],
  DigitalOcean: ['do-connecting-ip'],
  Envoy: ['x-envoy-*'],
  Fastly: ['fastly-*', 'x-varnish'],
  'Fly.io': ['fly-*'],
  Google: ['x-appengine-*', 'x-cloud-trace-context', 'x-goog-*', 'x-google-*', 'x-gfe-*'],
  Heroku: ['connect-time', 'total-route-time', 'x-heroku-*'],
  Imperva: ['incap-client-ip'],
  Netlify: ['x-nf-*'],
  Pomerium: ['x-pomerium-*'],
  Railway: ['x-railway-*'],
  Render: ['rndr-id', 'render-proxy-*'],
  Sucuri: ['x-sucuri-*'],
  Tailscale: ['tailscale-*'],
  Vercel: ['x-vercel-*'],
};

const PATTERN = new RegExp(
  `^(?:${Object.values(FORWARDING_HEADERS)
    .flat()
    .map((name) => name.replace('*', '.*'))
    .join('|')})$`,
);

/** Whether a request with this header came through a proxy. `name` must be in lower case. */
export function isForwardingHeader(name: string): boolean {
  return PATTERN.test(name);
}
