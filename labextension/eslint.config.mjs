import jupyter from '@jupyter/eslint-plugin';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores(['lib', 'node_modules', '.yarn']),
  {
    files: ['src/**/*.{ts,tsx}', 'vitest.config.mts'],
    extends: [tseslint.configs.recommendedTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.test.json', tsconfigRootDir: import.meta.dirname }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-function-return-type': [
        'error',
        { allowExpressions: true, allowTypedFunctionExpressions: true }
      ],
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'interface', format: ['PascalCase'], prefix: ['I'] }
      ],
      // A namespace of the component's name holds its props, as in JupyterLab.
      '@typescript-eslint/no-namespace': 'off',
      // Signals take a method and its object apart.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: 'error'
    }
  },
  { plugins: { jupyter } },
  ...jupyter.configs.recommended,
  {
    files: ['src/**'],
    rules: {
      // Status item and notices are needed from the first second on: nothing is left to load later.
      'jupyter/prefer-lazy-imports': 'off',
      // It does not see that the model owns its stream, and the shell its tabs.
      'jupyter/require-disposable-ownership': 'off'
    }
  },
  {
    files: ['src/__tests__/**'],
    rules: {
      // The samples are JSON that the tests spoil on purpose.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
      'jupyter/no-untranslated-string': 'off',
      'jupyter/require-signal-cleanup': 'off',
      'jupyter/prefer-signal-this-arg': 'off',
      'jupyter/require-signal-this-arg': 'off'
    }
  }
);
