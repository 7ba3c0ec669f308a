// TypeScript under `nodenext` writes '../../signature.js' for '../../signature.ts'. Jest reads the source. Therefore
// this resolver looks for '.ts' if a relative '.js' does not exist. The file is CommonJS, because Jest loads a resolver
// with require().
module.exports = (request, options) => {
  try {
    return options.defaultResolver(request, options);
  } catch (error) {
    if (/^\.{1,2}\/.*\.js$/.test(request)) {
      return options.defaultResolver(request.replace(/\.js$/, '.ts'), options);
    }
    throw error;
  }
};
