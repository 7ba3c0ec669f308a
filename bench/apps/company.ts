import { SECRET } from '../load/deliveries.ts';

/** The company of every application of ours. Its service is nowhere: nothing that is measured with it calls one. */
export const COMPANY = {
  baseUrl: 'http://127.0.0.1:9',
  clientId: 'bench',
  clientSecret: 'bench',
  webhookSecret: SECRET,
};
