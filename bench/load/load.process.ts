// The process that sends: makes and signs its deliveries before the clock starts.
import { answer } from '../processes/parent.ts';
import { closedLoop, requestBytes } from './closed.loop.ts';
import type { LoadResult } from './closed.loop.ts';
import { delivery } from './deliveries.ts';
import type { LoadOrder } from './load.ts';

answer(null, {
  async send({ url, scheme, count, connections }: LoadOrder): Promise<LoadResult> {
    const to = new URL(url);
    const requests = Array.from({ length: count }, () =>
      requestBytes(to.host, to.pathname, delivery(scheme)),
    );
    return closedLoop(to, requests, connections);
  },
});
