export declare const PAGES: string;
export declare function locate(specifier: string): string;
