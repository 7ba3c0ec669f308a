interface SidebarGroup {
  readonly text: string;
  /** `link`: path of the page on the site, without its extension. */
  readonly items: { readonly text: string; readonly link: string }[];
}

/** The pages, ordered by what a reader wants to do. Every page of `docs/` is in it. */
export const SIDEBAR: SidebarGroup[] = [
  {
    text: 'Start',
    items: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Request a payment', link: '/request-a-payment' },
      { text: 'Handle events', link: '/handle-events' },
      { text: 'When the webhook never comes', link: '/expectations' },
      { text: 'Test your handlers', link: '/testing' },
    ],
  },
  {
    text: 'Build',
    items: [
      { text: 'Choose an inbox', link: '/choose-an-inbox' },
      { text: 'Book exactly once with your ORM', link: '/orm' },
      { text: 'Several companies', link: '/several-companies' },
      { text: 'When one database is not enough', link: '/engines' },
      { text: "Nest's own packages", link: '/nest-packages' },
      { text: 'Rotate secrets', link: '/rotate-secrets' },
      { text: 'Develop locally', link: '/local-development' },
    ],
  },
  {
    text: 'Run',
    items: [
      { text: 'Deploy', link: '/deploying' },
      { text: 'Bundlers', link: '/bundlers' },
      { text: 'Operate', link: '/operating' },
      { text: 'Monitor', link: '/monitor' },
      { text: 'Console', link: '/console' },
      { text: 'Security', link: '/security' },
      { text: 'Data at rest', link: '/data-at-rest' },
      { text: 'Troubleshoot', link: '/troubleshoot' },
    ],
  },
  {
    text: 'Reference',
    items: [
      { text: 'Settings', link: '/settings' },
      { text: 'API', link: '/api/' },
      { text: 'Supported versions', link: '/supported-versions' },
      { text: 'Service contract', link: '/service-contract' },
      { text: 'Promises', link: '/promises' },
      { text: 'Performance', link: '/performance' },
    ],
  },
  {
    text: 'Internals',
    items: [
      { text: 'How it works', link: '/architecture' },
      { text: 'What a store must do', link: '/inbox-stores' },
      { text: 'Decisions', link: '/decisions/' },
    ],
  },
];
