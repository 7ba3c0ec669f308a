import type { WebhookRoutes } from '../webhook/webhook-routes.js';
import { DEFAULT_COMPANY } from '../companies/company.js';

/**
 * The path a delivery for a company is posted to: of the endpoint or, with `webhookPath: false`, of the
 * application's own route under `WebhookGuard`. Global prefix and URI version are included.
 *
 * @param company `undefined` prefers a path without the parameter `:company`.
 * @throws TypeError if no path or more than one fits.
 */
export function webhookPath(
  routes: Pick<WebhookRoutes, 'endpointPaths' | 'paths'>,
  company: string | undefined,
): string {
  const endpoint = routes.endpointPaths();
  const all = [...new Set(endpoint.length > 0 ? endpoint : routes.paths())];
  const named = all.filter((path) => /\/:company(?=\/|$)/.test(path));
  const plain = all.filter((path) => !named.includes(path));
  const preferred = company === undefined ? [plain, named] : [named, plain];
  const fitting = preferred.find((paths) => paths.length > 0) ?? [];
  const [path, ...others] = fitting.map((pattern) =>
    pattern.replace(/\/:company(?=\/|$)/, `/${encodeURIComponent(company ?? DEFAULT_COMPANY)}`),
  );
  if (path === undefined) {
    throw new TypeError(
      'The application has no webhook route: webhookPath is false, and no POST route has WebhookGuard.',
    );
  }
  if (others.length > 0 || /[:*{(]/.test(path)) {
    throw new TypeError(
      `deliver() cannot choose the path among ${fitting.join(', ')}. Give one, with its parameters filled in, as ` +
        'the option "path".',
    );
  }
  return path;
}
