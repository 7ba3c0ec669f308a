/**
 * Factor of a search result, so that guides come before the pages of the API reference and of decisions, which repeat the
 * words of the guides many times. VitePress puts the source of this function into the site, so it uses nothing outside.
 *
 * @param id path of the page with the section, such as `/api/index#paymentinbox`
 */
export const searchRank = (id: string): number =>
  id.startsWith('/api/') ? 0.1 : id.startsWith('/decisions/') ? 0.3 : 1;
