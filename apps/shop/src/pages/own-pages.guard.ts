import { ForbiddenException, Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';

interface PostRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Refuses the forms that pages of other sites send here, as far as the browser tells where a form stood. */
@Injectable()
export class OwnPagesGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<PostRequest>();
    if (isOurs(headers)) return true;
    throw new ForbiddenException("the shop takes no orders from other sites' pages");
  }
}

function isOurs({ host, origin, 'sec-fetch-site': site }: PostRequest['headers']): boolean {
  // What only a browser sends, and no page can change.
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  // Without the scheme: a proxy may have taken off the TLS.
  return origin === undefined || URL.parse(origin)?.host === host;
}
