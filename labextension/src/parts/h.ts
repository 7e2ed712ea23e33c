/** What JSX becomes: short names, which the minifier can shorten further. */
import * as React from 'react';

export const h = React.createElement;
export const Fragment = React.Fragment;
