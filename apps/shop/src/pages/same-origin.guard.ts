import { ForbiddenException, Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';

interface FormRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Rejects forms that a browser sends from a page of another site (CSRF). */
@Injectable()
export class SameOriginGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<FormRequest>();
    if (isSameOrigin(headers)) return true;
    throw new ForbiddenException('the shop accepts forms of its own pages only');
  }
}

function isSameOrigin({ host, origin, 'sec-fetch-site': site }: FormRequest['headers']): boolean {
  // Only the browser sets this header. Scripts of a page can't change it.
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  // The comparison ignores the scheme, because a proxy may terminate TLS.
  return origin === undefined || URL.parse(origin)?.host === host;
}
